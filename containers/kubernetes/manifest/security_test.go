package manifest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
)

// TestSecure checks that a task of a user other than root has no capabilities, as on Docker,
// where its programs cannot get any either. A task of root keeps the runtime's capabilities.
func TestSecure(t *testing.T) {
	b := NewBuilder(NewNamespaces("carma", nil), time.Minute, nil)
	for _, row := range []struct {
		user         string
		noPrivileges bool
		dropped      bool
	}{{"1000:1000", true, true}, {"1000", true, true}, {"0:0", true, false}, {"", true, false}, {"1000:1000", false, false}} {
		spec := containers.Spec{Name: "x", Image: "tool"}
		spec.User, spec.NoNewPrivileges = row.user, row.noPrivileges
		pod, err := b.Pod(spec, "")
		if err != nil {
			t.Fatal(err)
		}
		s := pod.Spec.Containers[0].SecurityContext
		if s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%+v: the seccomp profile is %+v", row, s.SeccompProfile)
		}
		none := s.Capabilities != nil && len(s.Capabilities.Add) == 0 && len(s.Capabilities.Drop) == 1 && s.Capabilities.Drop[0] == "ALL"
		if none != row.dropped || (s.RunAsNonRoot != nil && *s.RunAsNonRoot) != row.dropped || (s.AllowPrivilegeEscalation != nil) != row.noPrivileges {
			t.Errorf("%+v: %+v", row, s)
		}
	}
}
