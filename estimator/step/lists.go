package step

// listed is a copy of a list in memory that many share.
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
