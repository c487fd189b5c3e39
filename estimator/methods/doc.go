// Package methods holds the ways to estimate a training's GPU memory from its
// model configuration: carma's own and those it is compared with, each as its
// source defines it. A method answers for one GPU of the training, in bytes.
//
// What is published and what is our reading of it: horus and deepspeed are the
// published formulas; faketensor simulates a published tracker, and which
// tensors it still sees is read off its published numbers; dnnmem and llmem
// have the parts that their papers name, the formulas of which are ours.
package methods
