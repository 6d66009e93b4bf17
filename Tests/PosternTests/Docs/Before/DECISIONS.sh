decided() {
    installation; juice
    sub=$(command postern account show juice jane --json | jq -r .sub)
    service
    command postern decide juice --app com.example.juice --event sign_in --sub "$sub" >/dev/null
    command postern decide juice --app com.example.juice --event upgrade --sub "$sub" >/dev/null
    until_true decision
    replace 'rd_…' "$(decision)"
    replace SUB "$sub"
}
decision() { command postern decision list --json | jq -er '[.[] | select(.challenges | length > 0)][0].decision_id'; }
case "$first" in
"J='Content-Type"*) sandbox ;;
"postern app attestation"*)
    installation; juice
    command postern app add juice com.juice.app
    certificate apple.example
    cp /tmp/server.crt Apple_App_Attestation_Root_CA.pem
    ;;
"postern decide"* | "postern review"*) decided ;;
esac
