package jsonform

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

type phase string

type inner struct {
	Phase phase            `json:"phase,omitempty"`
	By    map[string]inner `json:"by"`
	Raw   json.RawMessage  `json:"raw"`
}

type embedded struct {
	ID int `json:"id"`
}

type special struct{ list []inner }

type specialForm struct {
	All []inner `json:"all"`
}

func (s special) MarshalJSON() ([]byte, error) { return json.Marshal(specialForm{s.list}) }

type outer struct {
	embedded
	Plain   string
	List    []*inner   `json:"list"`
	Special special    `json:"special"`
	At      time.Time  `json:"at"`
	Any     any        `json:"any"`
	Times   [2]float64 `json:"times"`
	Bytes   []byte     `json:"bytes"`
	Skipped int        `json:"-"`
	hidden  int
}

func types() *Types {
	return &Types{
		Words: map[reflect.Type][]string{reflect.TypeFor[phase](): {"queued", "running"}},
		Forms: map[reflect.Type]reflect.Type{reflect.TypeFor[special](): reflect.TypeFor[specialForm]()},
	}
}

func TestCheck(t *testing.T) {
	for _, row := range []struct{ body, unknown string }{
		{``, ``},
		{`null`, ``},
		{`{}`, ``},
		{`{"id":1,"Plain":"new","list":[{"phase":"queued","raw":{"new":[{"x":1}]}},null,{"phase":""}],"at":"2026-01-01T00:00:00Z","any":{"x":[1,{}]},"times":[1,2],"bytes":"YQ=="}`, ``},
		{`{"list":[{"by":{"ann":{"by":{"bob":{"phase":"running"}}}}}]}`, ``},
		{`{"list":"a text"}`, ``},
		{`{"new":{"x":1}}`, "field new"},
		{`{"-":1}`, "field -"},
		{`{"hidden":1}`, "field hidden"},
		{`{"id":1,"list":[{},{"new":1}]}`, "field list.new"},
		{`{"list":[{"phase":"parked"}]}`, `value "parked" of field list.phase`},
		{`{"list":[{"by":{"ann":{"by":{"bob":{"phase":"parked"}}}}}]}`, `value "parked" of field list.by.ann.by.bob.phase`},
		{`{"special":{"all":[{"new":1}]}}`, "field special.all.new"},
		{`{"special":{"off":1}}`, "field special.off"},
	} {
		err := types().Check(reflect.TypeFor[outer](), []byte(row.body))
		if got := ""; err != nil {
			if got = err.Error(); got != row.unknown {
				t.Errorf("%s: %s, want %s", row.body, got, row.unknown)
			}
		} else if row.unknown != "" {
			t.Errorf("%s: nothing, want %s", row.body, row.unknown)
		}
	}
	if err := types().Check(reflect.TypeFor[outer](), []byte(`{"id":`)); err == nil {
		t.Error("half an object is no error")
	}
}

func TestItems(t *testing.T) {
	got := types().Items(reflect.TypeOf(outer{hidden: 1}))
	want := []string{
		"jsonform.inner.by", "jsonform.inner.phase", "jsonform.inner.raw",
		"jsonform.outer.Plain", "jsonform.outer.any", "jsonform.outer.at", "jsonform.outer.bytes", "jsonform.outer.id", "jsonform.outer.list", "jsonform.outer.special", "jsonform.outer.times",
		"jsonform.phase=queued", "jsonform.phase=running", "jsonform.specialForm.all",
	}
	if !slices.Equal(got, want) {
		t.Errorf("items %q", got)
	}
}
