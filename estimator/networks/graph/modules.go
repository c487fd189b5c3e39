package graph

// modules is the position in the tree of modules at which layers are added.
type modules struct {
	Scope string // path of the module being built

	room
	block, blocks int // number of the current checkpointed block, or 0 if none; number of all blocks
}

// Module enters a module below the current one. leave returns to the previous module.
func (m *modules) Module(name string) (leave func()) {
	before := m.Scope
	m.Scope = m.path(name)
	return func() { m.Scope = before }
}

func (m *modules) path(name string) string {
	if m.Scope == "" || name == "" {
		return m.Scope + name
	}
	return m.name(m.Scope, name)
}
