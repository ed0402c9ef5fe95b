package zmtp

// For tests beside libzmq, which import a publisher that imports this package.
var (
	DialFor   = dial
	ListenFor = listen
	Echo      = echo
)
