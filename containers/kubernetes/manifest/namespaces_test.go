package manifest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestID checks that an id can be converted back to the pod's uid and name. An id without a
// namespace means the daemon's namespace.
func TestID(t *testing.T) {
	n := NewNamespaces("carma", []string{"team-a", "carma"})
	if got := n.Served(); !slices.Equal(got, []string{"carma", "team-a"}) || !n.Serves("team-a") || n.Serves("team-b") {
		t.Errorf("serves %q", got)
	}
	if all := NewNamespaces("carma", []string{AllNamespaces}); all.Served() != nil || !all.Serves("team-b") || !slices.Equal(all.Scope(), []string{""}) {
		t.Errorf("serves %q, reads %q", all.Served(), all.Scope())
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", UID: "u"}}
	for id, want := range map[string]struct {
		at    types.NamespacedName
		short string
	}{
		IDOf(pod):   {HomeOf(pod), "team-a/x"},
		"u.carma/x": {types.NamespacedName{Namespace: "carma", Name: "x"}, "x"},
		"u.x":       {types.NamespacedName{Namespace: "carma", Name: "x"}, "x"},
		"u":         {types.NamespacedName{Namespace: "carma"}, "u"},
	} {
		if uid, at := n.Split(id); uid != "u" || at != want.at || n.Short(id) != want.short {
			t.Errorf("%s is %s of %v, %s in short", id, uid, at, n.Short(id))
		}
	}
}

// TestMade checks that the daemon label distinguishes two daemons that serve the same
// namespace.
func TestMade(t *testing.T) {
	one, two := NewNamespaces("one", []string{"team-a"}), NewNamespaces("two", []string{"team-a"})
	labels := one.ClusterLabels(map[string]string{"carma.task": "1", "words": "no label of a cluster"})
	if len(labels) != 3 || !one.Made("team-a", labels) || two.Made("team-a", labels) {
		t.Errorf("labels %v", labels)
	}
	old := map[string]string{ManagedBy: Owner}
	if !one.Made("one", old) || one.Made("team-a", old) || one.Made("one", nil) {
		t.Error("a pod of an older program is in its daemon's namespace")
	}
}
