package admission

import (
	"strings"
	"testing"

	"carma/runner/api"
)

// TestLeaveFolderRefused checks that paths that cannot be a folder in the container are refused.
func TestLeaveFolderRefused(t *testing.T) {
	for value, want := range map[string]string{
		"relative": "write an absolute path", "/": "write an absolute path", "/a/../b": "write an absolute path", "/data": "-v mounts another folder there",
	} {
		err := checkLeave(api.Submit{Image: "x", Env: []string{"CARMA_LEAVE=/fine", "CARMA_LEAVE=" + value}, Mounts: []api.Mount{{Source: "/x", Target: "/data"}}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := checkLeave(api.Submit{Image: "x", Env: []string{"CARMA_LEAVE=relative", "CARMA_LEAVE=/fine"}}); err != nil {
		t.Error(err)
	}
}
