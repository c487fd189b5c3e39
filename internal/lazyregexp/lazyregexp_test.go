package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	word := New(`^a+$`)
	if first := word(); first != word() {
		t.Error("it is compiled at each call")
	}
	if !word().MatchString("aaa") || word().MatchString("ab") {
		t.Error("it is another expression")
	}
	bad := New(`(`) // not compiled, so no panic
	defer func() {
		if recover() == nil {
			t.Error("a text that is no expression was taken")
		}
	}()
	bad()
}
