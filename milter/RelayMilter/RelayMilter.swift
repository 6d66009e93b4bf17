// RelayMilter
