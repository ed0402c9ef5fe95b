package cli

// wrongLine is an error about the command line itself: nothing was done.
type wrongLine struct{ error }
