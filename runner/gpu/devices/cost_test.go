package devices

import "testing"

// BenchmarkRules measures the comparison that is done every two seconds for each container.
func BenchmarkRules(b *testing.B) {
	x := newBox(b)
	for b.Loop() {
		if (&Checker{}).Rules(x.c.PID, x.c.Names) == "" {
			b.Fatal("no rules")
		}
	}
}

// BenchmarkCheck is the check of one container, with its child process.
func BenchmarkCheck(b *testing.B) {
	x := newBox(b)
	for b.Loop() {
		if x.check().State() != Openable {
			b.Fatal("not openable")
		}
	}
}
