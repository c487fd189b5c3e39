package api

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Texts returns texts that [Field.Set] reads back as the field's value: one text, or one
// for each entry of a list. It returns none if the field is not given or no text can
// express it.
func (f *Field) Texts(s *Submit) []string {
	if !f.Given(s) || f.Old() {
		return nil
	}
	for _, texts := range f.candidates(s) {
		var read Submit
		if !slices.ContainsFunc(texts, func(text string) bool { return f.Set(&read, text) != nil }) && f.same(&read, s) {
			return texts
		}
	}
	return nil
}

// candidates returns texts that may express the field's value, the plainest first.
func (f *Field) candidates(s *Submit) (all [][]string) {
	add := func(text string) { all = append(all, []string{text}) }
	if f.train != nil {
		add(s.Train[f.train.Key()])
		return all
	}
	if f.counts {
		switch {
		case s.NoGPU:
			add("0")
		case s.GPUs == AllGPUs:
			add("all")
		case len(s.GPUIDs) > 0:
			add("device=" + strings.Join(s.GPUIDs, ","))
		}
	}
	switch v := f.of(s).Interface().(type) {
	case []string:
		all = append(all, v)
	case time.Duration:
		add("0") // some fields use 0 for never
		add(strings.TrimSuffix(strings.TrimSuffix(v.String(), "0s"), "0m"))
		add(v.String())
	case int64:
		for _, unit := range []string{"G", "M", "K", "B"} {
			n := int64(1)
			for range strings.Index("BKMG", unit) {
				n *= 1024
			}
			if v%n == 0 {
				add(strconv.FormatInt(v/n, 10) + unit)
			}
		}
		add(strconv.FormatInt(v, 10))
	default:
		add(fmt.Sprint(v))
	}
	return all
}

// same reports whether the field has the same value in both.
func (f *Field) same(a, b *Submit) bool {
	switch {
	case f.train != nil:
		return a.Train[f.train.Key()] == b.Train[f.train.Key()]
	case f.counts && (a.NoGPU != b.NoGPU || !slices.Equal(a.GPUIDs, b.GPUIDs)):
		return false
	}
	return reflect.DeepEqual(f.of(a).Interface(), f.of(b).Interface())
}

// Differs reports whether the field has another value, or is given, in only one of two
// submissions.
func (f *Field) Differs(a, b *Submit) bool {
	return f.Given(a) != f.Given(b) || f.Given(a) && !f.same(a, b)
}
