package cmd

// AwaitVerbs waits for what Main has left behind after an interrupt.
func AwaitVerbs() { verbs.Wait() }

// LeaveAtOnce lets Main wait for no verb after an interrupt, until it is undone.
func LeaveAtOnce() (undo func()) {
	before := leaveAfter
	leaveAfter = 0
	return func() { leaveAfter = before }
}
