package runner

import "testing"

// long leaves a test out of go test -short: one that takes more than half a second.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than half a second")
	}
}
