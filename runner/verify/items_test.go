package verify

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"carma/mapper"
	"carma/runner/journal"
)

var writeItems = flag.Bool("write-items", false, "write testdata/journal-items.txt; only while no build with this schema is in use")

const itemsFile = "testdata/journal-items.txt"

// journalItems returns all fields and values that rows of a journal may have, named as in the
// list of features.
func journalItems() (all []string) {
	types, rows := rowForms()
	for kind := range rows {
		if strings.Contains(kind, " ") { // not the snapshot, the task, the suite
			all = append(all, kind)
		}
	}
	all = append(all, types.Items(slices.Collect(maps.Values(rows))...)...)
	slices.Sort(all)
	return all
}

// TestJournalItems compares the allowed content of rows with the content that the first
// program of schema 4 wrote and with the features since.
func TestJournalItems(t *testing.T) {
	now := journalItems()
	if *writeItems {
		if err := os.WriteFile(itemsFile, grouped(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(itemsFile)
	if err != nil {
		t.Fatal(err)
	}
	old := ungrouped(b)
	if len(old) < 500 {
		t.Fatalf("%s has only %d items", itemsFile, len(old))
	}
	of := map[string]string{}
	for _, f := range journal.Features() {
		for _, item := range f.Items {
			of[item] = f.Name
		}
	}
	for _, item := range now {
		if !slices.Contains(old, item) && of[item] == "" {
			t.Errorf("%q is new in journals: add it to a feature in runner/journal/features.go, for example\n\t{%q, []string{%q}},\nso that a carma that does not know it refuses the journal", item, "what it is for", item)
		}
		if slices.Contains(old, item) && of[item] != "" {
			t.Errorf("%q of the feature %q is in every journal of schema 4", item, of[item])
		}
	}
	for _, item := range append(old, slices.Collect(maps.Keys(of))...) {
		if !slices.Contains(now, item) {
			t.Errorf("%q may be in journals and is not read any more: a field that is there stays", item)
		}
	}
}

// grouped writes items in lines: "event cancel configured", "model.Task. after".
func grouped(items []string) []byte {
	lines := map[string][]string{}
	for _, item := range items {
		i := strings.IndexAny(item, " =")
		if i < 0 {
			i = strings.LastIndexByte(item, '.')
		}
		lines[item[:i+1]] = append(lines[item[:i+1]], item[i+1:])
	}
	var b bytes.Buffer
	for _, of := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintln(&b, strings.TrimSpace(of), strings.Join(lines[of], " "))
	}
	return b.Bytes()
}

func ungrouped(b []byte) (items []string) {
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		of := words[0]
		if !strings.HasSuffix(of, ".") && !strings.HasSuffix(of, "=") {
			of += " "
		}
		for _, w := range words[1:] {
			items = append(items, of+w)
		}
	}
	return items
}

// TestFormsReadBack checks that each kind of row passes with every field of its
// type that has a value.
func TestFormsReadBack(t *testing.T) {
	types, rows := rowForms()
	for kind, of := range rows {
		body, err := json.Marshal(reflect.New(of).Interface())
		if err != nil {
			t.Fatal(err)
		}
		if err := types.Check(of, body); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	body, err := mapper.New(mapper.DefaultOptions()).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := types.Check(rows["snapshot"], body); err != nil {
		t.Error(err)
	}
}
