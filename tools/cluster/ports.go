/*
Copyright 2026 The Vitess Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ephemeral range (32768 on Linux): a port from
// within it could be lost to an outgoing connection before its server starts.
const (
	lowestPort  = 15000
	highestPort = 32000
)

// ports hands out free loopback ports, none of them twice.
type ports struct {
	taken map[int]bool
}

// next returns a port that nothing listens on at this moment.
func (p *ports) next() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if p.taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		listener.Close()
		if p.taken == nil {
			p.taken = make(map[int]bool)
		}
		p.taken[port] = true
		return port, nil
	}
	return 0, errors.New("no free port found between 15000 and 32000")
}

// nextN returns n free ports.
func (p *ports) nextN(n int) ([]int, error) {
	list := make([]int, n)
	for i := range list {
		port, err := p.next()
		if err != nil {
			return nil, err
		}
		list[i] = port
	}
	return list, nil
}

// loopback returns the address of a local port.
func loopback(port int) string {
	return "127.0.0.1:" + strconv.Itoa(port)
}
