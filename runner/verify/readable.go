package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"carma/mapper"
	"carma/mapper/words"
	"carma/runner/helpers"
	"carma/runner/journal"
	"carma/runner/jsonform"
	"carma/runner/record"
)

// rowForms returns the allowed content of a journal's rows: how their types are written,
// and the type of each kind of row.
var rowForms = sync.OnceValues(func() (*jsonform.Types, map[string]reflect.Type) {
	types := &jsonform.Types{Words: map[reflect.Type][]string{}, Forms: map[reflect.Type]reflect.Type{}}
	for _, list := range append(mapper.Words(), words.Codes()) {
		values := reflect.ValueOf(list)
		for i := range values.Len() {
			types.Words[values.Type().Elem()] = append(types.Words[values.Type().Elem()], values.Index(i).String())
		}
	}
	for _, pair := range mapper.WrittenAs() {
		types.Forms[reflect.TypeOf(pair[0])] = reflect.TypeOf(pair[1])
	}
	rows := map[string]reflect.Type{"task": reflect.TypeFor[record.Record](), "suite": reflect.TypeOf(helpers.Form())}
	for kind, form := range mapper.Forms() {
		rows[kind] = reflect.TypeOf(form)
	}
	return types, rows
})

// Readable returns a [journal.Newer] if this program does not understand the rows of a
// journal that a start reads: the newest snapshot, the events and decisions after it, the
// records of tasks and the suites.
func Readable(j *journal.Reader) error {
	rows, err := rowsOf(j)
	if err != nil {
		return err
	}
	snap, err := j.Load()
	if err != nil {
		return err
	}
	if err := rows.check("snapshot", snap.Seq, snap.Body); err != nil {
		return err
	}
	if err := rows.checkAfter(j, snap.Seq); err != nil {
		return err
	}
	for _, f := range []journal.Filter{{Unfinished: true}, {Limit: record.KeepFinished}} {
		tasks, err := j.Tasks(f)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if err := rows.check("task", t.ID, t.Body); err != nil {
				return err
			}
		}
	}
	keys, err := j.Metas("")
	if err != nil {
		return err
	}
	for _, m := range keys {
		if helpers.IsSuite(m.Key) {
			var made struct{ After int64 } // the highest task at that time
			if err := json.Unmarshal(m.Value, &made); err != nil {
				return err
			}
			if err := rows.check("suite", made.After, m.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckAll is [Readable] for all events that the journal has.
func CheckAll(j *journal.Reader) error {
	rows, err := rowsOf(j)
	if err != nil {
		return err
	}
	first, _, err := j.Bounds()
	if err != nil {
		return err
	}
	if err := rows.checkAfter(j, first-1); err != nil {
		return err
	}
	return Readable(j)
}

// rows checks rows of a journal.
type rows struct {
	writer      string // of the journal
	event, task int64  // see [journal.Reader.Legacy]
}

func rowsOf(j *journal.Reader) (r rows, err error) {
	if r.writer, err = j.Writer(); err == nil {
		r.event, r.task, err = j.Legacy()
	}
	return r, err
}

// checkAfter checks the events after number after, and their decisions.
func (r rows) checkAfter(j *journal.Reader, after int64) error {
	for ev, err := range j.Events(after) {
		if err == nil {
			err = r.check("event "+ev.Kind, ev.Seq, ev.Body)
		}
		if err != nil {
			return err
		}
	}
	for d, err := range j.Decisions(after) {
		if err == nil {
			err = r.check("decision "+d.Kind, d.Seq, d.Body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns a [journal.Newer] if this program does not know the kind of a row, a field
// or a value in it. n is the row's event, or its task; for a suite, the highest task when
// it was stored. Rows from before schema 4 may have fields that are gone; a kind must be
// known.
func (r rows) check(kind string, n int64, body []byte) error {
	types, known := rowForms()
	of, ok := known[kind]
	if !ok {
		return r.newer("%s (number %d)", kind, n)
	}
	legacy := r.event
	if kind == "task" || kind == "suite" {
		legacy = r.task
	}
	if n <= legacy {
		return nil
	}
	err := types.Check(of, body)
	if unknown, ok := errors.AsType[*jsonform.Unknown](err); ok {
		return r.newer("%s in %s %d", unknown, kind, n)
	}
	return err
}

func (r rows) newer(format string, args ...any) error {
	return &journal.Newer{What: "this carma does not know " + fmt.Sprintf(format, args...), Version: r.writer}
}
