installation; juice
set_key provider issuer https://id.example
service
