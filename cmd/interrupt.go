package cmd

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// leaveAfter is how long a verb may take to end by itself after an interrupt.
var leaveAfter = 300 * time.Millisecond

// mostFlushing is how long the last of the output may take.
const mostFlushing = time.Second

// verbs are those that run. Main may leave one behind, which tests then wait for.
var verbs sync.WaitGroup

// interrupt waits for the end of a verb that was interrupted, and goes without it if that takes too long: nothing is
// written then any more. A verb that writes files is waited for, so that none is left half written.
func (env *Env) interrupt(done <-chan int) int {
	select {
	case code := <-done:
		return code
	case <-time.After(leaveAfter):
	}
	idle := make(chan struct{})
	go func() {
		env.files.Lock()
		env.left = true
		env.files.Unlock()
		close(idle)
	}()
	select {
	case code := <-done:
		return code
	case <-idle:
	}
	// Whoever is to read what is written may have stopped reading.
	left := make(chan struct{})
	go func() {
		env.leave()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(mostFlushing):
	}
	return codeInterrupted
}

// holdFiles is called before files are written, and release after that, if there is something to do after it.
func (env *Env) holdFiles() (release func(), err error) {
	env.files.Lock()
	if env.left {
		env.files.Unlock()
		return nil, context.Canceled
	}
	return env.files.Unlock, nil
}

// leave writes what there is to be written, and lets nothing be written after it.
func (env *Env) leave() {
	env.Stdout.close(context.Canceled)
	fmt.Fprintln(env.Stderr, interruptedNote)
	env.Stderr.close()
}

const interruptedNote = "kseg: interrupted"
