module mergebackoff/tools

go 1.26.8

require (
	github.com/go-sql-driver/mysql v1.9.3
	github.com/stretchr/testify v1.11.1
	vitess.io/vitess v0.24.4
	vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff v0.0.0-00010101000000-000000000000
)

require (
	filippo.io/edwards25519 v1.1.1 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/golang/glog v1.2.5 // indirect
	github.com/lmittmann/tint v1.1.3 // indirect
	github.com/mattn/go-isatty v0.0.21 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20250313105119-ba97887b0a25 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	golang.org/x/sys v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/grpc v1.80.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff => ..
