// Package attempt runs the attempts of tasks. An [Attempt] makes the container of a launch,
// or continues with the one that an earlier daemon has made. It limits, suspends, resumes,
// resizes and stops the container on request, copies its output, and reports to the loop how
// it has ended.
//
// The parts of an attempt have types of their own: builder makes the container's
// specification, suspension carries out the orders to suspend and resume, resizing sets the
// limits, output copies the output, and classifier determines how the attempt has ended.
package attempt
