package model

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"
)

// anyReason draws a reason that a journal may hold.
func anyReason(t *rapid.T, depth int) Reason {
	text := rapid.String()
	mem := rapid.Map(rapid.Int64(), func(n int64) units.Bytes { return units.Bytes(n) })
	r := Reason{
		Code: ReasonCode(rapid.StringMatching("[a-z-]*").Draw(t, "code")), Task: TaskID(rapid.Int64().Draw(t, "task")), GPU: rapid.Int().Draw(t, "GPU"),
		Have: mem.Draw(t, "have"), Need: mem.Draw(t, "need"), Of: mem.Draw(t, "of"),
		Count: rapid.Int().Draw(t, "count"), More: rapid.Int().Draw(t, "more"), Limit: rapid.Int().Draw(t, "limit"),
		Span: time.Duration(rapid.Int64().Draw(t, "span")), Most: time.Duration(rapid.Int64().Draw(t, "most")),
		Name: text.Draw(t, "name"), Condition: Condition(text.Draw(t, "condition")), Text: text.Draw(t, "text"), Remedy: text.Draw(t, "remedy"),
	}
	if depth > 0 && rapid.Bool().Draw(t, "has a cause") {
		r = r.WithCause(anyReason(t, depth-1))
	}
	return r
}

// TestReasonRoundTrip checks that any reason survives the journal.
func TestReasonRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReason(t, 2)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got := Reason{Text: "of before", Cause: &Reason{}}
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, r) || !got.Equal(r) {
			t.Fatalf("%+v came back as %+v, %v", r, got, err)
		}
	})
}

// TestReasonOfOlderVersion checks that a sentence in a journal is read as a reason.
func TestReasonOfOlderVersion(t *testing.T) {
	for _, row := range []struct {
		body string
		want Reason
	}{
		{`"stopped by ada"`, Reason{Code: ReasonText, Text: "stopped by ada"}},
		{`""`, Reason{}},
		{`null`, Reason{}},
		{`{}`, Reason{}},
		{`{"code":"time-limit","span":1000}`, Reason{Code: ReasonTimeLimit, Span: 1000}},
	} {
		var got struct{ Reason Reason }
		got.Reason = Reason{Code: ReasonAsked}
		if row.body == "null" {
			got.Reason = Reason{}
		}
		if err := json.Unmarshal([]byte(`{"Reason":`+row.body+`}`), &got); err != nil || got.Reason != row.want {
			t.Errorf("%s is read as %+v, %v", row.body, got.Reason, err)
		}
	}
	for _, body := range []string{`7`, `[]`, `{"code":7}`, `"`} {
		var r Reason
		if err := json.Unmarshal([]byte(body), &r); err == nil {
			t.Errorf("%s is read as %+v", body, r)
		}
	}
}

// TestReasonEqual checks that code and figures count, words do not, and a sentence equals
// any reason.
func TestReasonEqual(t *testing.T) {
	r := Reason{Code: ReasonWantedMore, Need: 2, Have: 1, Text: "x"}
	rapid.Check(t, func(t *rapid.T) { // each figure counts
		a, b := anyReason(t, 1), anyReason(t, 1)
		if a.Code == ReasonText || b.Code == ReasonText || a.Cause != nil && a.Cause.Code == ReasonText || b.Cause != nil && b.Cause.Code == ReasonText {
			t.Skip()
		}
		wordless := func(r Reason) Reason {
			r.Text, r.Remedy = "", ""
			if r.Cause != nil {
				c := *r.Cause
				c.Text, c.Remedy = "", ""
				r.Cause = &c
			}
			return r
		}
		if want := reflect.DeepEqual(wordless(a), wordless(b)); a.Equal(b) != want || b.Equal(a) != want {
			t.Fatalf("%+v and %+v: equal is %v", a, b, a.Equal(b))
		}
	})
	reworded := r
	reworded.Text, reworded.Remedy = "y", "z"
	more := r
	more.Need = 3
	for _, row := range []struct {
		a, b Reason
		want bool
	}{
		{r, reworded, true},
		{r, more, false},
		{r, Reason{}, false},
		{r, Reason{Code: ReasonText, Text: "it wanted 2 and had 1"}, true},
		{Reason{}, Reason{Code: ReasonText, Text: "something"}, true},
		{Reason{Code: ReasonOOM}.WithCause(r), Reason{Code: ReasonOOM}.WithCause(reworded), true},
		{Reason{Code: ReasonOOM}.WithCause(r), Reason{Code: ReasonOOM}.WithCause(more), false},
		{Reason{Code: ReasonOOM}.WithCause(r), Reason{Code: ReasonOOM}, false},
		{Reason{Code: ReasonOOM}.WithCause(r), Reason{Code: ReasonOOM}.WithCause(Reason{Code: ReasonText}), true},
	} {
		if row.a.Equal(row.b) != row.want || row.b.Equal(row.a) != row.want {
			t.Errorf("%+v and %+v: equal is %v", row.a, row.b, !row.want)
		}
	}
}

// TestOldStops checks that the effect of a stop recorded by an older version is known by
// its sentence.
func TestOldStops(t *testing.T) {
	for text, want := range map[string]ReasonCode{
		"time limit of 1h0m0s reached":                                                      ReasonTimeLimit,
		"time slot of 1h0m0s used, others wait":                                             ReasonSlotUsed,
		"it used 6.0 GiB of the 4.0 GiB reserved for it on GPU 0, and others need the room": ReasonOveruse,
		"stopped by ada": ReasonAsked,
	} {
		if got := (Reason{Code: ReasonText, Text: text}).StopCode(); got != want {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
	if got := (Reason{Code: ReasonAsked, Text: "time limit of my patience"}).StopCode(); got != ReasonAsked {
		t.Errorf("a user's words are taken for %s", got)
	}
}
