// DNSClientTests
