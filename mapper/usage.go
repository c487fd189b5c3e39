package mapper

// TakesTurns reports whether users take turns: the order is a fair one.
func (s *State) TakesTurns() bool { return s.Ledger.Options().Fair() }
