package problems

import (
	"bytes"
	"strings"
	"testing"

	"carma/mapper/breaker"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/engine"

	"github.com/rs/zerolog"
)

// TestSet: a problem is logged when it begins and when it ends. Another count of failures is
// no change.
func TestSet(t *testing.T) {
	var out bytes.Buffer
	c := New(zerolog.New(&out))
	_, changed := c.Now()
	set := func(what string, changes bool, lines int, all ...api.Trouble) {
		t.Helper()
		out.Reset()
		c.Set(all)
		closed := false
		select {
		case <-changed:
			closed = true
		default:
		}
		var now []api.Trouble
		now, changed = c.Now()
		if closed != changes || strings.Count(out.String(), "\n") != lines || len(now) != len(all) {
			t.Errorf("%s: changed %t, %d problems: %s", what, closed, len(now), out.String())
		}
	}
	engineDown := Engine(ScopeEngine, "down", "no answer"+engine.ToFix+"start it")
	if engineDown.Text != "no answer" || engineDown.Cause != "no answer" || engineDown.Remedy != "start it" {
		t.Errorf("%+v", engineDown)
	}
	gpu := func(index, failures int) api.Trouble {
		return Breaker(breaker.BreakerView{Fault: model.Fault{Cause: "x"}, GPU: "GPU-a", Failures: failures}, index)
	}
	set("nothing", false, 0)
	set("the engine", true, 1, engineDown)
	set("the same", false, 0, engineDown)
	set("a GPU too", true, 1, engineDown, gpu(1, 3))
	set("more failures", false, 0, engineDown, gpu(1, 4))
	set("another GPU instead", true, 2, engineDown, gpu(2, 4))
	set("all over", true, 2)
	if x := Breaker(breaker.BreakerView{Fault: model.Fault{Cause: "x"}}, -1); x.Scope != ScopeEngine || x.GPU != nil {
		t.Errorf("%+v", x)
	}
}
