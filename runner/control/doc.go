// Package control carries out what users ask of submitted tasks and of GPUs: hold, release,
// requeue, move, pin, suspend, stop and remove a task, cordon GPUs, pause launching, reserve GPUs,
// and list quotas. Each request is authorized, checked in the loop against the present state, and
// durable when it returns.
package control
