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

package vreplication

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"vitess.io/vitess/go/sqlescape"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

type (
	// mergePlan is the player's side of a mergebackoff.Table.
	mergePlan struct {
		*TablePlan
		// keyColumns are the target's columns that Table.Key stands for; nil if
		// the two do not correspond one to one.
		keyColumns []string
		indexes    map[string][]indexPart
	}

	// indexPart is one part of a unique index of the target table.
	indexPart struct {
		column string
		// prefix is the number of characters that are indexed; zero is all.
		prefix int64
		// field is the column of the row image that is written to the column,
		// and -1 if there is no such column, or more than one.
		field int
		info  *ColumnInfo
	}
)

func (mp *mergePlayer) Table(name string) (*mergebackoff.Table, error) {
	tplan := mp.vp.tablePlans[name]
	if tplan == nil {
		return nil, nil
	}
	return mp.table(tplan)
}

func (mp *mergePlayer) Plan(event *binlogdatapb.FieldEvent) (*mergebackoff.Table, error) {
	tplan, err := mp.vp.replicatorPlan.buildExecutionPlan(event)
	if err != nil {
		return nil, err
	}
	return mp.table(tplan)
}

// table describes a plan to merge backoff.
func (mp *mergePlayer) table(tplan *TablePlan) (*mergebackoff.Table, error) {
	if table := mp.tables[tplan]; table != nil {
		return table, nil
	}
	tpb := tplan.TablePlanBuilder
	plan := &mergePlan{TablePlan: tplan}
	table := &mergebackoff.Table{Name: tplan.TargetName, Columns: len(tplan.Fields), Copying: tplan.Lastpk != nil, Plan: plan}
	for _, field := range tplan.Fields {
		table.JSON = append(table.JSON, field.Type == querypb.Type_JSON)
		table.Names = append(table.Names, field.Name)
	}
	for _, pk := range tpb.pkCols {
		for reference := range pk.references {
			table.Key = append(table.Key, plan.field(reference))
		}
		if field := plan.source(pk); field >= 0 {
			plan.keyColumns = append(plan.keyColumns, pk.colName.String())
		}
	}
	if len(plan.keyColumns) != len(tpb.pkCols) {
		plan.keyColumns = nil
		slices.Sort(table.Key)
	}
	if err := mp.readIndexes(table, plan); err != nil {
		return nil, err
	}
	if err := mp.judge(table, plan); err != nil {
		return nil, err
	}
	mp.tables[tplan] = table
	return table, nil
}

// judge says what must not be done with the table's changes.
func (mp *mergePlayer) judge(table *mergebackoff.Table, plan *mergePlan) error {
	tpb := plan.TablePlanBuilder
	related, err := mp.hasForeignKeys(table.Name)
	switch {
	case err != nil:
		return err
	case tpb.onInsert != insertNormal:
		table.InOrder = "its rows are aggregated"
	case len(table.Unique) == 0:
		table.InOrder = "it has no unique key"
	case plan.HasExtraSourcePkColumns:
		table.Refuse = "its rows are found by more than the primary key"
	case related:
		table.Refuse = "it has a foreign key, or one refers to it"
	case slices.Contains(table.Key, -1):
		table.Refuse = "its primary key is not in the row images"
	case !hasRowIdentity(table, mp.vp.vr.colInfoMap[table.Name]):
		table.Refuse = "it has no primary key, nor an equivalent"
	}
	if len(plan.ConvertCharset) > 0 || len(plan.ConvertIntToEnum) > 0 {
		table.KeepRow = "its values are converted"
	}
	for _, info := range mp.vp.vr.colInfoMap[table.Name] {
		if !info.IsGenerated && findCol(sqlparser.NewIdentifierCI(info.Name), tpb.colExprs) == nil {
			table.KeepRow = "column " + info.Name + " is not written by this workflow"
		}
	}
	return nil
}

// hasRowIdentity reports whether the plan's primary key is one. Of a table
// without any, the plan takes all columns.
func hasRowIdentity(table *mergebackoff.Table, columns []*ColumnInfo) bool {
	if slices.ContainsFunc(columns, func(info *ColumnInfo) bool { return !info.IsPK }) {
		return true
	}
	return slices.ContainsFunc(table.Unique, func(key mergebackoff.UniqueKey) bool { return key.Name == "PRIMARY" })
}

// field returns the column of the row image with this name, or -1.
func (plan *mergePlan) field(name string) int {
	return slices.IndexFunc(plan.Fields, func(field *querypb.Field) bool { return strings.EqualFold(field.Name, name) })
}

// source returns the column of the row image that is written to a target column
// as it is, or -1.
func (plan *mergePlan) source(cexpr *colExpr) int {
	if cexpr == nil || cexpr.operation != opExpr {
		return -1
	}
	col, ok := cexpr.expr.(*sqlparser.ColName)
	if !ok {
		return -1
	}
	return plan.field(col.Name.String())
}

// readIndexes reads the unique indexes of the target table: they are not in the
// plan. Plans are looked at only while no transaction is open.
func (mp *mergePlayer) readIndexes(table *mergebackoff.Table, plan *mergePlan) error {
	vr := mp.vp.vr
	qr, err := vr.dbClient.DBClient.ExecuteFetch("show index from "+sqlescape.EscapeID(table.Name), maxRows)
	if err != nil {
		return vterrors.Wrapf(err, "failed to read the unique indexes of table %s", table.Name)
	}
	plan.indexes = make(map[string][]indexPart)
	// The rows of one index come together, in the order of its parts.
	for _, row := range qr.Named().Rows {
		if row.AsInt64("Non_unique", 1) != 0 {
			continue
		}
		name := row.AsString("Key_name", "")
		// The column of an expression is NULL.
		part := indexPart{column: row.AsString("Column_name", ""), prefix: row.AsInt64("Sub_part", 0), field: -1}
		if part.column != "" {
			part.field = plan.source(plan.TablePlanBuilder.findCol(sqlparser.NewIdentifierCI(part.column)))
			i := slices.IndexFunc(vr.colInfoMap[table.Name], func(info *ColumnInfo) bool { return strings.EqualFold(info.Name, part.column) })
			if i >= 0 {
				part.info = vr.colInfoMap[table.Name][i]
			}
		}
		if _, ok := plan.indexes[name]; !ok {
			table.Unique = append(table.Unique, mergebackoff.UniqueKey{Name: name})
		}
		plan.indexes[name] = append(plan.indexes[name], part)
	}
	for i := range table.Unique {
		table.Unique[i].Columns = plan.keyFields(table.Unique[i].Name)
	}
	return nil
}

// keyFields returns the columns of the row image that an index covers, or nil if
// they do not tell whether the key changes.
func (plan *mergePlan) keyFields(index string) (fields []int) {
	for _, part := range plan.indexes[index] {
		if part.field < 0 || part.info == nil || part.info.IsGenerated {
			return nil
		}
		fields = append(fields, part.field)
	}
	return fields
}

func (mp *mergePlayer) hasForeignKeys(table string) (bool, error) {
	vr := mp.vp.vr
	db, name := encodeString(vr.dbClient.DBName()), encodeString(table)
	query := fmt.Sprintf("select 1 from information_schema.key_column_usage where referenced_table_name is not null and (table_schema=%s and table_name=%s or referenced_table_schema=%s and referenced_table_name=%s) limit 1",
		db, name, db, name)
	qr, err := vr.dbClient.DBClient.ExecuteFetch(query, maxRows)
	if err != nil {
		return false, vterrors.Wrapf(err, "failed to read the foreign keys of table %s", table)
	}
	return len(qr.Rows) > 0, nil
}

// Render lets the plan write its statements down instead of running them.
func (mp *mergePlayer) Render(changes []mergebackoff.Change) ([]string, error) {
	var statements []string
	write := func(sql string) (*sqltypes.Result, error) {
		statements = append(statements, sql)
		return &sqltypes.Result{}, nil
	}
	tplan := changes[0].Table.Plan.(*mergePlan).TablePlan
	deletes := changes[0].Deletes()
	if len(changes) > 1 && mp.maxBatchSize > 0 && tplan.Lastpk == nil && (!deletes || tplan.MultiDelete != nil) {
		rows := make([]*binlogdatapb.RowChange, 0, len(changes))
		for _, change := range changes {
			rows = append(rows, change.Row)
		}
		apply := tplan.applyBulkInsertChanges
		if deletes {
			apply = tplan.applyBulkDeleteChanges
		}
		_, err := apply(rows, write, mp.maxBatchSize)
		return statements, err
	}
	for _, change := range changes {
		plan := tplan
		if change.Recreates() {
			// An update of the primary key is written as a delete and an insert;
			// of this one only the insert is left.
			recreate := *tplan
			recreate.HasExtraSourcePkColumns = true
			recreate.Delete = nil
			plan = &recreate
		}
		if _, err := plan.applyChange(change.Row.CloneVT(), write); err != nil {
			return nil, err
		}
	}
	return statements, nil
}

// RowQuery finds the row as the plan's own DELETE does.
func (mp *mergePlayer) RowQuery(deletion mergebackoff.Change) (string, error) {
	statements, err := mp.Render([]mergebackoff.Change{deletion})
	if err != nil {
		return "", err
	}
	plan := deletion.Table.Plan.(*mergePlan)
	start := "delete from " + sqlparser.String(plan.TablePlanBuilder.name)
	if len(statements) != 1 || !strings.HasPrefix(statements[0], start) {
		return "", vterrors.Errorf(vtrpcpb.Code_INTERNAL, "merge backoff: a row of table %s is not deleted by one DELETE", deletion.Table.Name)
	}
	columns := make([]string, len(plan.Fields))
	for i := range columns {
		columns[i] = "null"
	}
	for _, cexpr := range plan.TablePlanBuilder.colExprs {
		if field := plan.source(cexpr); field >= 0 && !isGenerated(cexpr) {
			columns[field] = sqlescape.EscapeID(cexpr.colName.String())
		}
	}
	return "select " + strings.Join(columns, ", ") + " from " + strings.TrimPrefix(statements[0], "delete from "), nil
}

// HolderQuery leaves it to MySQL to say what is equal: the values are compared
// in the column's own character set and collation.
func (mp *mergePlayer) HolderQuery(change mergebackoff.Change, key *mergebackoff.UniqueKey) (string, error) {
	plan, ok := change.Table.Plan.(*mergePlan)
	if !ok {
		return "", vterrors.Errorf(vtrpcpb.Code_INTERNAL, "merge backoff: plan of table %s is of type %T", change.Table.Name, change.Table.Plan)
	}
	if plan.keyColumns == nil || len(plan.indexes[key.Name]) == 0 {
		return "", nil
	}
	values := sqltypes.MakeRowTrusted(plan.Fields, change.Row.After)
	var conditions []string
	for _, part := range plan.indexes[key.Name] {
		if part.field < 0 || part.info == nil || values[part.field].IsNull() {
			return "", nil
		}
		conditions = append(conditions, part.conditions(values[part.field])...)
	}
	columns := make([]string, 0, len(plan.keyColumns))
	for _, column := range plan.keyColumns {
		columns = append(columns, sqlescape.EscapeID(column))
	}
	return fmt.Sprintf("select %s from %s where %s", strings.Join(columns, ", "),
		sqlescape.EscapeID(change.Table.Name), strings.Join(conditions, " and ")), nil
}

// conditions compare the part's column with a value. The connection's character
// set is binary, so a plain literal would be compared byte by byte.
func (part indexPart) conditions(value sqltypes.Value) []string {
	column := sqlescape.EscapeID(part.column)
	literal := func(raw []byte) string {
		quoted := "_binary" + sqltypes.EncodeStringSQL(string(raw))
		switch {
		case part.info.CharSet != "":
			return fmt.Sprintf("convert(%s using %s) collate %s", quoted, part.info.CharSet, part.info.Collation)
		case value.Type() == querypb.Type_BINARY && part.prefix == 0:
			return fmt.Sprintf("cast(%s as %s)", quoted, part.info.ColumnType)
		}
		return quoted
	}
	switch {
	case part.prefix > 0:
		start := leading(value.Raw(), part)
		return []string{
			// The pattern finds the rows by the index, the comparison decides.
			column + " like " + literal(append(escapePattern(start), '%')),
			fmt.Sprintf("left(%s, %d) = %s", column, part.prefix, literal(start)),
		}
	case value.IsQuoted():
		return []string{column + " = " + literal(value.Raw())}
	}
	var buf strings.Builder
	value.EncodeSQL(&buf)
	return []string{column + " = " + buf.String()}
}

// leading returns the part of a value that a prefix index covers: characters of a
// text, bytes of anything else.
func leading(value []byte, part indexPart) []byte {
	n := int(part.prefix)
	if part.info.CharSet == "" || !strings.HasPrefix(part.info.CharSet, "utf8") {
		return value[:min(n, len(value))]
	}
	end := 0
	for ; n > 0 && end < len(value); n-- {
		_, size := utf8.DecodeRune(value[end:])
		end += size
	}
	return value[:end]
}

// escapePattern escapes what LIKE would understand.
func escapePattern(value []byte) []byte {
	for _, special := range []string{`\`, "%", "_"} {
		value = bytes.ReplaceAll(value, []byte(special), []byte(`\`+special))
	}
	return value
}
