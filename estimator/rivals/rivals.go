// Package rivals holds the published ways to estimate a training's GPU memory,
// each as its source defines it, for comparison: carma estimate shows them, a
// replay plays policies under them. Nothing is booked by them, so the daemon does
// not have them.
//
// What is published and what is our reading of it: horus and deepspeed are the
// published formulas; faketensor simulates a published tracker, and which
// tensors it still sees is read off its published numbers; dnnmem and llmem
// have the parts that their papers name, the formulas of which are ours;
// gpumemnet is trained by this project on the published data.
package rivals

import "carma/estimator/methods"

// All puts the rivals behind carma's own method, in the order of tables.
func All(own methods.Method) []methods.Method {
	return append(append([]methods.Method{own}, Classifiers()...), Formulas()...)
}

// Formulas are the rivals that need nothing but a subject.
func Formulas() []methods.Method {
	return []methods.Method{Horus{Constant: 800 << 20}, FakeTensor{}, DNNMem{}, LLMem{}, DeepSpeed{}}
}
