package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"
)

// TestDescribe: the test's own program has modules; each is in the document once, and
// what the relations name is there. The same programs give the same document.
func TestDescribe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0).UTC()
	doc, err := describe("1.2.3", at, []string{self})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range doc.Packages {
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.ID) || slices.Contains(ids, p.ID) {
			t.Errorf("%s", p.ID)
		}
		ids = append(ids, p.ID)
	}
	if len(ids) < 2 || doc.Packages[0].Sum[0].Value == "" || doc.Creation.Created != "2023-11-14T22:13:20Z" {
		t.Errorf("%+v", doc)
	}
	for _, r := range doc.Relations {
		if r.Of != doc.ID && !slices.Contains(ids, r.Of) || !slices.Contains(ids, r.To) {
			t.Errorf("%+v names nothing", r)
		}
	}
	again, err := describe("1.2.3", at, []string{self})
	a, _ := json.Marshal(doc)
	b, _ := json.Marshal(again)
	if err != nil || string(a) != string(b) {
		t.Errorf("%v, %s, %s", err, a, b)
	}
	if _, err := describe("1", at, nil); err == nil {
		t.Error("no program")
	}
	if _, err := describe("1", at, []string{"main.go"}); err == nil {
		t.Error("no Go program")
	}
}
