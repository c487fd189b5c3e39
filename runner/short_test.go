package runner

import "testing"

// long skips a test under go test -short. Tests that take more than half a second call it.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than half a second")
	}
}
