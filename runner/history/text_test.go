package history

import (
	"reflect"
	"strings"
	"testing"

	"carma/mapper"
	"carma/mapper/model"
)

// untold lists the events and decisions about a task that add no line to its history, each with
// the reason.
var untold = map[string]string{
	"event leaves":   "says what the program can do",
	"event settled":  "repeats an end that the record has",
	"event taken-in": "stands in place of a submission that is lost",
	"event touched":  "somebody types in its terminal",

	"decision wake-at": "about no task",
}

// TestTexts gives each event and decision about a task a line in its history, or
// has a reason why not.
func TestTexts(t *testing.T) {
	const id = 7
	r, _ := newReader(t)
	seen := map[string]bool{}
	for name, form := range mapper.Forms() {
		v := reflect.New(reflect.TypeOf(form)).Elem()
		setTask(v, id)
		var line historyLine
		switch x := v.Interface().(type) {
		case model.Event:
			if model.About(x) != id {
				continue
			}
			line = r.eventText(id, x, map[int]bool{})
		case model.Decision:
			line = r.decisionText(id, x)
		default:
			continue
		}
		seen[name] = true
		if why := untold[name]; (line.Text == "") != (why != "") {
			t.Errorf("%s: the line is %q; untold says %q", name, line.Text, why)
		}
	}
	for name := range untold {
		if !seen[name] {
			t.Errorf("untold has %s, which is not about a task", name)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d kinds were seen", len(seen))
	}
}

// setTask sets the number of each task in a value, and of the finished task in Finish.
func setTask(v reflect.Value, id int64) {
	switch {
	case v.Type() == reflect.TypeFor[model.TaskID]():
		v.SetInt(id)
	case v.Type() == reflect.TypeFor[model.Task]():
		v.Set(reflect.ValueOf(model.Task{Request: model.Request{ID: model.TaskID(id)}, Phase: model.Succeeded}))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && !strings.HasPrefix(v.Type().Field(i).Name, "After") {
				setTask(f, id)
			}
		}
	}
}
