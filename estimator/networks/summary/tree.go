package summary

import (
	"fmt"
	"strconv"
	"strings"

	"carma/configs/models"
)

// node is a module of a printed tree.
type node struct {
	name, class string
	args        map[string]string // the positional ones are "0", "1"
	params      int64             // -1: not printed
	repeat      int
	nodes       []*node
}

// maxTree is the largest depth of a tree.
const maxTree = 200

// treeStart recognizes the first line of a module tree: it ends with "Name(", or
// is one known module.
func treeStart(line string) bool {
	class, args, ok := strings.Cut(strings.TrimRight(line, " \t"), "(")
	if !ok || !identifier(class) {
		return false
	}
	_, known := classes[class]
	return args == "" || known && strings.Contains(args, ")")
}

func identifier(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// parseTree reads the output of print(model), from its first line on:
//
//	Net(
//	  (conv): Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1))
//	  (0-11): 12 x Block(
//	  ...
//
// Lines may end with ", 80 params", as pytorch-model-summary prints them.
func parseTree(lines []string, at int) (*node, error) {
	root := &node{repeat: 1}
	stack := []*node{root}
	for i := at; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		top := stack[len(stack)-1]
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, ")") {
			if len(stack) == 1 {
				return nil, &models.Error{Line: i + 1, What: "a module ends that has not begun"}
			}
			if stack = stack[:len(stack)-1]; len(stack) == 1 {
				return root.nodes[0], nil
			}
			continue
		}
		n, open, ok := parseNode(line)
		if !ok {
			if len(top.nodes) > 0 || len(stack) > 1 {
				continue // extra text of a module ("(extra): ..."), or a wrapped line
			}
			return nil, &models.Error{Line: i + 1, What: "not a module: " + models.Short(line)}
		}
		top.nodes = append(top.nodes, n)
		if open {
			if stack = append(stack, n); len(stack) > maxTree {
				return nil, &models.Error{Line: i + 1, What: fmt.Sprintf("modules within modules more than %d times", maxTree)}
			}
		} else if len(stack) == 1 {
			return n, nil
		}
	}
	return nil, &models.Error{Line: len(lines), What: "the module tree does not end; the text is cut off"}
}

// parseNode reads one line. open: its modules follow.
func parseNode(line string) (n *node, open, ok bool) {
	n = &node{params: -1, repeat: 1}
	if name, rest, named := strings.Cut(line, "): "); named && strings.HasPrefix(line, "(") {
		n.name, line = name[1:], rest
	}
	if times, rest, many := strings.Cut(line, " x "); many {
		if k, err := strconv.Atoi(times); err == nil && k > 0 && k <= models.MaxLayers {
			n.repeat, line = k, rest
		}
	}
	class, args, ok := strings.Cut(line, "(")
	if !ok || !identifier(class) {
		return nil, false, false
	}
	n.class = class
	if args == "" {
		return n, true, true
	}
	end := strings.LastIndexByte(args, ')')
	if end < 0 {
		return n, false, true // its arguments continue in the next line
	}
	if note, ok := strings.CutSuffix(args[end+1:], " params"); ok {
		if p, ok := count(strings.TrimLeft(note, ", ")); ok {
			n.params = p
		}
	}
	n.args = arguments(args[:end])
	return n, false, true
}

// arguments splits s at commas outside of brackets.
func arguments(s string) map[string]string {
	args := map[string]string{}
	depth, from, position := 0, 0, 0
	for i := 0; i <= len(s) && position < 64; i++ {
		switch {
		case i == len(s) || s[i] == ',' && depth == 0:
			arg := strings.TrimSpace(s[from:i])
			from = i + 1
			if key, value, named := strings.Cut(arg, "="); named {
				args[key] = value
			} else if arg != "" {
				args[strconv.Itoa(position)] = arg
			}
			position++
		case s[i] == '(' || s[i] == '[':
			depth++
		case s[i] == ')' || s[i] == ']':
			depth--
		}
	}
	return args
}

// number is the first of these arguments that is a number or a tuple of numbers.
func (n *node) number(keys ...string) (int64, bool) {
	if list := n.numbers(keys...); len(list) > 0 {
		return list[0], true
	}
	return 0, false
}

func (n *node) numbers(keys ...string) []int64 {
	for _, key := range keys {
		text, ok := n.args[key]
		if !ok {
			continue
		}
		dims, ok := dimsOf(strings.Trim(text, "()[] "))
		if ok && len(dims) > 0 {
			for i, d := range dims {
				dims[i] = max(0, d)
			}
			return dims
		}
	}
	return nil
}

// each is an argument with one number per dimension.
func (n *node) each(key string, dims int, fallback int64) []int64 {
	list := n.numbers(key)
	if len(list) == 0 {
		list = []int64{fallback}
	}
	out := make([]int64, dims)
	for i := range out {
		out[i] = list[min(i, len(list)-1)]
	}
	return out
}

func (n *node) yes(key string, fallback bool) bool {
	if text, ok := n.args[key]; ok {
		return text == "True"
	}
	return fallback
}
