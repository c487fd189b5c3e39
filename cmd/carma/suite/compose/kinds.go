package compose

import (
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// The keys of x-carma that select the kind of a service.
const (
	keyTask   = "task"
	keyHelper = "helper"
)

// tasks returns the services that are tasks; the others are helpers. A service is a task
// if it reserves GPUs, has its own settings in x-carma, or waits for the end of a task;
// in the last case it has no GPU. x-carma: {task: true} and {helper: true} override this.
// A TensorBoard needs no GPU, so it is a helper even if it reserves some. If no service
// is a task by these rules, settings at the top of the file make all of them tasks.
func (t *translator) tasks(active []types.ServiceConfig) map[string]bool {
	is, fixed := map[string]bool{}, map[string]bool{}
	any := false
	for _, c := range active {
		own := false
		for _, path := range slices.Backward(t.lineage(c.Name)) {
			n, _ := t.find(append(slices.Clone(path), Extension)...)
			own = own || len(withoutKind(n).Content) > 0
			if kind, said := t.kind(n, keyText(path)+"."+Extension); said {
				is[c.Name], fixed[c.Name] = kind, true
			}
		}
		if !fixed[c.Name] {
			is[c.Name] = own || gpusOf(c).asks && !isTensorBoard(c)
		}
		any = any || is[c.Name]
	}
	top, _ := t.find(Extension)
	if kind, said := t.kind(top, Extension); said || !any && top != nil && len(withoutKind(top).Content) > 0 {
		for _, c := range active {
			if !fixed[c.Name] && !is[c.Name] {
				is[c.Name] = kind || !said
			}
		}
	}
	for range active { // each round finds the tasks that wait for a task of an earlier round
		for _, c := range active {
			for of, d := range c.DependsOn {
				if is[of] && !is[c.Name] && !fixed[c.Name] && d.Condition == types.ServiceConditionCompletedSuccessfully {
					is[c.Name] = true
					t.follows = append(t.follows, c.Name)
				}
			}
		}
	}
	return is
}

// isTensorBoard reports whether a service runs TensorBoard, which shows the trainings of
// other services. Many Compose files reserve all GPUs for it too, because it uses the
// training's image.
func isTensorBoard(c types.ServiceConfig) bool {
	words := slices.Concat(c.Entrypoint, c.Command)
	return len(words) > 0 && filepath.Base(words[0]) == "tensorboard"
}

// kind reads the keys task and helper of an x-carma.
func (t *translator) kind(n *yaml.Node, at string) (task, said bool) {
	for _, key := range []string{keyTask, keyHelper} {
		k, v := get(n, key)
		if v == nil {
			continue
		}
		if v.Value != "true" || said {
			t.refuse(k.Line, at+"."+key, "write task: true or helper: true, and only one of them")
			return false, false
		}
		task, said = key == keyTask, true
	}
	return task, said
}

// withoutKind returns an x-carma without the keys that select the kind of a service.
func withoutKind(n *yaml.Node) *yaml.Node {
	if n == nil {
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	if n.Kind != yaml.MappingNode {
		return n
	}
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k != keyTask && k != keyHelper {
			rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &rest
}
