package broker

import (
	"errors"
	"fmt"
)

// Failure is why a broker does not load a log, or does not start.
type Failure struct {
	// Offline: the log directory goes offline, and the broker runs on with the others if there are any. Else the broker
	// does not start.
	Offline bool
	// Place is the file it is about, as Kafka names it; "" if it is none.
	Place string
	Err   error
}

// Error is a clause: what is wrong.
func (f *Failure) Error() string {
	if f.Place != "" {
		return f.Place + ": " + f.Err.Error()
	}
	return f.Err.Error()
}

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Err }

// stops makes the failure of a broker that does not start.
func stops(place, text string, args ...any) *Failure {
	return &Failure{Place: place, Err: fmt.Errorf(text, args...)}
}

// overflow is LogSegmentOffsetOverflowException: the segment is split, and loading begins again.
type overflow struct {
	seg *segment
	err error
}

func (o *overflow) Error() string { return o.err.Error() }

// corrupt marks what Kafka throws as a CorruptRecordException or an InvalidRecordException, which recovery takes for
// the end of the log; anywhere else nothing catches it.
type corrupt struct{ err error }

func (c *corrupt) Error() string { return c.err.Error() }
func (c *corrupt) Unwrap() error { return c.err }

// reason is the error; nil where the log ends in part of a batch.
func (c *corrupt) reason() error {
	if c == nil {
		return nil
	}
	return c.err
}

// errDirectory is for a directory with the name of a file.
var errDirectory = errors.New("it is a directory")

// errStopped is for a run that was interrupted.
var errStopped = errors.New("interrupted")

// unreadable marks what could not be read here, so that there is no answer.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// asFailure makes of an error that nothing in Kafka catches what it means for the broker. What could not be read here
// stays as it is.
func asFailure(err error, place string) error {
	var known *Failure
	var read *unreadable
	if err == nil || errors.As(err, &known) || errors.As(err, &read) {
		return err
	}
	return &Failure{Place: place, Err: err}
}
