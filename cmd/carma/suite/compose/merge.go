package compose

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The tags of Compose for merged files: one removes a value, the other replaces the
// earlier value instead of merging.
const (
	tagReset    = "!reset"
	tagOverride = "!override"
)

// Keys whose value is not merged according to its type. Values of replacing keys replace
// the earlier value; nameLists may be a list of names or a mapping. * is any name.
var (
	replacing = [][]string{{"services", "*", "command"}, {"services", "*", "entrypoint"}, {"services", "*", "healthcheck", "test"}}
	nameLists = [][]string{{"services", "*", "depends_on"}, {"services", "*", "networks"}}
	mounted   = [][]string{{"services", "*", "volumes"}, {"services", "*", "devices"}}
	build     = []string{"services", "*", "build"}
)

func among(path []string, patterns [][]string) bool {
	return slices.ContainsFunc(patterns, func(p []string) bool {
		return slices.EqualFunc(p, path, func(a, b string) bool { return a == "*" || a == b })
	})
}

// merge overrides the keys of a file with the keys of a further file, as Compose does. It
// modifies neither. The loader merges the values themselves; this tree records the place
// of each value, and contains the settings of x-carma.
func merge(to, from *yaml.Node, path []string) *yaml.Node {
	switch {
	case from.Tag == tagOverride, to == nil, among(path, replacing):
		return settled(from)
	case among(path, nameLists):
		to, from = asMapping(to), asMapping(from)
	case among(path, [][]string{build}):
		to, from = inFolderKey(to), inFolderKey(from)
	}
	switch {
	case from.Kind == yaml.ScalarNode && from.Tag == "!!null":
		return to
	case to.Kind == yaml.MappingNode && from.Kind == yaml.MappingNode:
		return mergeKeys(to, from, path)
	case to.Kind == yaml.SequenceNode && from.Kind == yaml.SequenceNode:
		from = settled(from)
		all := copyNode(to)
		if among(path, mounted) { // replaces an entry with the same target
			all.Content = slices.DeleteFunc(slices.Clone(to.Content), func(old *yaml.Node) bool {
				return slices.ContainsFunc(from.Content, func(n *yaml.Node) bool { return target(n) == target(old) })
			})
		}
		all.Content = append(slices.Clone(all.Content), from.Content...)
		return all
	}
	return settled(from)
}

func mergeKeys(to, from *yaml.Node, path []string) *yaml.Node {
	all := copyNode(to)
	all.Content = slices.Clone(to.Content)
	for i := 0; i+1 < len(from.Content); i += 2 {
		k, v := from.Content[i], from.Content[i+1]
		at := slices.IndexFunc(all.Content, func(n *yaml.Node) bool { return n == keyIn(all, k.Value) })
		switch {
		case v.Tag == tagReset && at >= 0:
			all.Content = slices.Delete(all.Content, at, at+2)
		case v.Tag == tagReset:
		case at >= 0:
			merged := merge(all.Content[at+1], v, append(slices.Clone(path), k.Value))
			if all.Content[at+1] != merged && merged.Kind == yaml.ScalarNode || v.Tag == tagOverride {
				all.Content[at] = k
			}
			all.Content[at+1] = merged
		default:
			all.Content = append(all.Content, k, settled(v))
		}
	}
	return all
}

func keyIn(n *yaml.Node, name string) *yaml.Node {
	k, _ := get(n, name)
	return k
}

// settled returns a tree without the parts to remove, and without the tags.
func settled(n *yaml.Node) *yaml.Node {
	c := copyNode(n)
	if c.Tag == tagOverride {
		c.Tag = ""
		c.Tag = c.ShortTag()
	}
	c.Content = nil
	for i := 0; i < len(n.Content); i++ {
		if n.Kind != yaml.MappingNode {
			if n.Content[i].Tag != tagReset {
				c.Content = append(c.Content, settled(n.Content[i]))
			}
			continue
		}
		if k, v := n.Content[i], n.Content[i+1]; v.Tag != tagReset {
			c.Content = append(c.Content, k, settled(v))
		}
		i++
	}
	return c
}

func copyNode(n *yaml.Node) *yaml.Node {
	c := *n
	return &c
}

// asMapping converts a list of names to a mapping with the names as keys.
func asMapping(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return n
	}
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode {
			m.Content = append(m.Content, item, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: item.Line})
		}
	}
	return m
}

// inFolderKey converts a build that is only a folder to a mapping with that folder.
func inFolderKey(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return n
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "context", Line: n.Line}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Content: []*yaml.Node{k, n}}
}

// target returns the path of a mount or a device in the container.
func target(n *yaml.Node) string {
	if _, v := get(n, "target"); v != nil {
		return v.Value
	}
	parts := strings.Split(n.Value, ":")
	return parts[min(1, len(parts)-1)]
}
