package admission

import "carma/mapper/model"

// Numbers numbers the tasks. Only the loop uses it.
type Numbers struct{ next model.TaskID }

// NewNumbers returns the numbers after the last task.
func NewNumbers(last model.TaskID) *Numbers { return &Numbers{last + 1} }

// Next returns the number of the next task.
func (n *Numbers) Next() model.TaskID { return n.next }

// Reserve makes the next number higher than a number that is in use.
func (n *Numbers) Reserve(used model.TaskID) { n.next = max(n.next, used+1) }

// take uses the next numbers.
func (n *Numbers) take(count int) { n.next += model.TaskID(count) }
