// DNSClient
