package ports

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"carma/runner/api"
	"carma/runner/gpu"
)

// TestFollow: a follower gets the ports of its attempt once they are open.
func TestFollow(t *testing.T) {
	key := gpu.AttemptKey{Task: 1, Attempt: 2}
	synctest.Test(t, func(t *testing.T) {
		b := New()
		var got []string
		go b.Follow(t.Context(), key, func(p api.OpenPort) error { got = append(got, p.Port); return nil })
		synctest.Wait()
		b.Set(gpu.AttemptKey{Task: 1, Attempt: 1}, []api.OpenPort{{Port: "80"}})
		synctest.Wait()
		b.Set(key, []api.OpenPort{{Port: "8080"}, {Port: "8081"}})
		synctest.Wait()
		if !slices.Equal(got, []string{"8080", "8081"}) {
			t.Errorf("sent %v", got)
		}
	})
	b := New()
	b.Set(key, []api.OpenPort{{Port: "8080"}, {Port: "8081"}})
	n := 0
	if b.Follow(t.Context(), key, func(api.OpenPort) error { n++; return errors.New("gone") }); n != 1 {
		t.Errorf("sent %d times to a follower that is gone", n)
	}
	b.Set(key, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Follow(ctx, key, func(api.OpenPort) error { t.Error("sent a closed port"); return nil })
}

// TestCheck: only privileged users have the ports of root.
func TestCheck(t *testing.T) {
	for text, ok := range map[string][2]bool{"8080": {true, true}, "80:80": {false, true}, "80": {true, true}, "x": {false, false}} {
		for i, privileged := range []bool{false, true} {
			if err := Check([]string{text}, privileged); (err == nil) != ok[i] {
				t.Errorf("%s, privileged %v: %v", text, privileged, err)
			}
		}
	}
}
