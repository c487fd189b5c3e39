package graph

import "strings"

// roomSize is the number of numbers, or bytes of names, that share one Go allocation.
const roomSize = 4096

// room stores the shapes, inputs and names of layers in few Go allocations. A large
// network has some ten thousand of them. Separate allocations caused most of the garbage
// collector's work after an estimate.
type room struct {
	numbers []int64
	indices []int
	names   strings.Builder
}

// sizes returns a copy of list, extended by more.
func (r *room) sizes(list []int64, more ...int64) []int64 {
	return kept(&r.numbers, list, more)
}

// places returns a copy of a list.
func (r *room) places(list []int) []int { return kept(&r.indices, list, nil) }

// kept copies list and more into the shared memory of all. An append to the copy
// allocates new memory.
func kept[T any](all *[]T, list, more []T) []T {
	n := len(list) + len(more)
	if n == 0 {
		return list
	}
	if cap(*all)-len(*all) < n {
		*all = make([]T, 0, max(roomSize, n))
	}
	start := len(*all)
	*all = append(append(*all, list...), more...)
	return (*all)[start : start+n : start+n]
}

// name joins two parts of a name with a dot.
func (r *room) name(scope, name string) string {
	n := len(scope) + 1 + len(name)
	if r.names.Cap()-r.names.Len() < n {
		r.names = strings.Builder{} // names in the old buffer stay valid
		r.names.Grow(max(4*roomSize, n))
	}
	start := r.names.Len()
	r.names.WriteString(scope)
	r.names.WriteByte('.')
	r.names.WriteString(name)
	return r.names.String()[start:]
}
