installation; juice
set_key provider issuer https://id.example
certificate hooks.juice.example
echo '{}' >/tmp/body
https_server /tmp/body hooks.juice.example
service
