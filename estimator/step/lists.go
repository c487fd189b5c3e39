package step

// listed copies a list into memory that all lists of the plan share.
func (p *planner) listed(list []int32) []int32 {
	if len(list) == 0 {
		return nil
	}
	if cap(p.lists)-len(p.lists) < len(list) {
		p.lists = make([]int32, 0, max(4096, len(list)))
	}
	start := len(p.lists)
	p.lists = append(p.lists, list...)
	return p.lists[start:len(p.lists):len(p.lists)]
}
