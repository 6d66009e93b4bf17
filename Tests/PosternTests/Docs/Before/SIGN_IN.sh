page_of_your_own() {
    installation; juice
    certificate id.example
    set_key http listen 9.9.9.10:443
    set_key http tls_certificate /tmp/server.crt
    set_key http tls_key /tmp/server.key
    set_key http public_url https://id.example
    set_key provider authorization_endpoint https://sign-in.example/
    service https://id.example
    command postern api-key issue --operator --scope authorizations:write >page.key
}
authorize() {
    command curl -fsS https://id.example/v1/authorizations -H "Authorization: Bearer $(cat page.key)" -H 'Content-Type: application/json' \
        -d '{"user": "jane", "client_id": "com.example.juice", "redirect_uri": "https://juice.example/signed-in", "scopes": ["openid"],
             "nonce": "n-0S6_WzA2Mj", "real_user_status": 2}' | jq -r .code
}
case "$first" in
"postern team add"*) installation ;;
"openssl"*) installation; juice ;;
"curl -sS https://id.example/v1/authorizations"*) page_of_your_own ;;
"curl -sS https://id.example/auth/token"*)
    page_of_your_own
    secret=$(command postern app secret issue juice com.example.juice)
    code=$(authorize)
    # The reader takes the refresh token out of the first answer; here it is of another sign-in.
    refresh=$(command curl -fsS https://id.example/auth/token -d grant_type=authorization_code -d "code=$(authorize)" \
        -d redirect_uri=https://juice.example/signed-in -d client_id=com.example.juice -d "client_secret=$secret" | jq -r .refresh_token)
    ;;
esac
