package mapper

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEventRoundTrip: every event, whatever is in it, survives the journal.
func TestEventRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := anyEvent(t)
		kind, body, err := EncodeEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeEvent(kind, body)
		if err != nil || !reflect.DeepEqual(got, ev) || EventTime(got) != EventTime(ev) {
			t.Fatalf("%#v came back as %#v, %v", ev, got, err)
		}
	})
}

func anyEvent(t *rapid.T) Event {
	at := Instant(rapid.Int64().Draw(t, "at"))
	task := TaskID(rapid.Int64().Draw(t, "task"))
	text := rapid.String()
	mem := rapid.Map(rapid.Int64(), func(n int64) Bytes { return Bytes(n) })
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return Configured{At: at, Options: anyOptions(t)}
	case 1:
		return GPUsFound{At: at, GPUs: []GPUInfo{{ID: GPUID(text.Draw(t, "id")), Node: text.Draw(t, "node"), Index: 3, Model: text.Draw(t, "model"), Capacity: mem.Draw(t, "capacity")}}}
	case 2:
		return EngineChanged{At: at, Up: rapid.Bool().Draw(t, "up"), Reason: text.Draw(t, "reason")}
	case 3:
		return TaskSubmitted{At: at, Request: Request{
			ID: task, User: text.Draw(t, "user"), GPUs: rapid.Int().Draw(t, "GPUs"), Priority: Priority(rapid.Int().Draw(t, "priority")),
			Exclusive: rapid.Bool().Draw(t, "exclusive"), Retries: rapid.Int().Draw(t, "retries"), TimeLimit: time.Duration(rapid.Int64().Draw(t, "limit")),
		}}
	case 4:
		return Estimated{At: at, Task: task, Estimate: Estimate{Memory: mem.Draw(t, "memory"), WholeGPU: rapid.Bool().Draw(t, "whole"), Method: Method(text.Draw(t, "method"))}}
	case 5:
		return Sampled{At: at, GPUs: []GPUSample{{
			ID: GPUID(text.Draw(t, "id")), Used: mem.Draw(t, "used"), Foreign: mem.Draw(t, "foreign"), SMACT: rapid.Float64().Draw(t, "SMACT"),
			SMOCC: rapid.Float64().Draw(t, "SMOCC"), DRAMA: rapid.Float64().Draw(t, "DRAMA"), Fault: text.Draw(t, "fault"),
			Tasks: []TaskUse{{Task: task, Used: mem.Draw(t, "use")}},
		}}}
	case 6:
		return Started{At: at, Task: task, Attempt: rapid.Int().Draw(t, "attempt")}
	case 7:
		return Exited{At: at, Task: task, Attempt: rapid.Int().Draw(t, "attempt"), Class: Class(text.Draw(t, "class")), Code: rapid.Int().Draw(t, "code"),
			Peak: mem.Draw(t, "peak"), Demand: mem.Draw(t, "demand"), Message: text.Draw(t, "message")}
	case 8:
		return Cancel{At: at, Task: task, Reason: text.Draw(t, "reason")}
	}
	return Woke{At: at}
}
