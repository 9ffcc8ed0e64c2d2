package txn

import "strconv"

// State is where a transactional id stands; the numbers are those of Kafka's
// records.
type State int8

// The states of a transactional id.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	Dead
	PrepareEpochFence
)

// stateNames are Kafka's, as ListTransactions filters and shows them.
var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// logStates is how many states can stand in a record: the last two cannot.
const logStates = int(Dead)

// String is the state's name in Kafka.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
	return stateNames[s]
}

// stateOf finds a state by its name.
func stateOf(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return State(s), true
		}
	}
	return 0, false
}

// prepared says that the verdict stands and markers are to be written.
func (s State) prepared() bool { return s == PrepareCommit || s == PrepareAbort }

// completed says that the last transaction has ended everywhere.
func (s State) completed() bool { return s == CompleteCommit || s == CompleteAbort }
