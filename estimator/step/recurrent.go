package step

import (
	"carma/configs/models"
)

// bothGradients computes the gradients of a layer's inputs and weights. PyTorch's
// operator for cuDNN (ATen/native/cudnn/RNN.cpp) always computes a gradient of a
// recurrent layer's input. With batch_first, it copies the input, and keeps a copy of the
// output's gradient until the input's gradient exists. Under autocast all weights are
// copied into one flat piece of 16 bits (ATen/cudnn/AutocastRNN.cpp). Their gradients are
// copied too, and are converted to 32 bits after the operator's kept tensors are freed:
// [run.widened].
func (r *run) bothGradients(l *layer) error {
	if l.kind != models.Recurrent || len(l.inputs) == 0 {
		if err := r.scoreGradients(l); err != nil {
			return err
		}
		if err := r.inputGradients(l); err != nil {
			return err
		}
		return r.weightGradients(l)
	}
	in := &r.values[l.inputs[0]]
	size := in.bytes
	if l.cast > 0 && in.element == 4 { // under autocast it computes in 16 bits
		size /= 2
	}
	x, err := r.take(size, Activations)
	if err != nil {
		return err
	}
	dy, err := r.take(l.out, Activations)
	if err != nil {
		return err
	}
	var unwanted chunk
	if !in.grad {
		if unwanted, err = r.take(size, Activations); err != nil {
			return err
		}
	}
	if err := r.inputGradients(l); err != nil {
		return err
	}
	r.release(&dy)
	if l.cast > 0 {
		r.flat, err = r.take(l.cast, Gradients)
	} else {
		err = r.weightGradients(l)
	}
	if err != nil {
		return err
	}
	r.release(&x)
	r.release(&unwanted)
	return nil
}

// widened converts the gradients of a recurrent layer's weights from 16 bits.
func (r *run) widened(l *layer) error {
	if l.kind != models.Recurrent || !r.flat.held {
		return nil
	}
	err := r.weightGradients(l)
	r.release(&r.flat)
	return err
}
