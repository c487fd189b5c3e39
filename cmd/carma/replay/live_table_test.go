package replay

import (
	"testing"
	"time"
)

func TestExact(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 1500 * time.Millisecond: "1.5s", 70 * time.Second: "1m10s", 25325 * time.Second: "7h02m05s"} {
		if got := exact(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}
