package taskfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/runner/api"
)

// Write returns a submission as a task file of one task, for people to edit. It omits
// settings that a task file cannot express: dependencies, the place in an array, and
// values without a text form.
func Write(s *api.Submit) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	put := func(key string, value any) {
		v := &yaml.Node{}
		if v.Encode(value) == nil {
			root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, v)
		}
	}
	list := func(key string, items []string) {
		if len(items) == 0 {
			return
		}
		put(key, items)
		root.Content[len(root.Content)-1].Style = yaml.FlowStyle
	}
	if s.Image != "" {
		put("image", s.Image)
	}
	list("entrypoint", s.Entrypoint)
	list("command", s.Command)
	for _, f := range api.Fields() {
		switch texts := f.Texts(s); {
		case f.List:
			list(f.Name, texts)
		case texts != nil:
			put(f.Name, texts[0])
			root.Content[len(root.Content)-1].Tag = "" // as people write it: 2, not "2"
			root.Content[len(root.Content)-1].Style = 0
		}
	}
	list("env", s.Env)
	var volumes []string
	for _, m := range s.Mounts {
		volume := m.Source + ":" + m.Target
		if m.ReadOnly {
			volume += ":ro"
		}
		volumes = append(volumes, volume)
	}
	list("volumes", volumes)
	var labels []string
	for key, value := range s.Labels {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	list("labels", labels)
	var text strings.Builder
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	err := out.Encode(root)
	return []byte(text.String()), err
}
