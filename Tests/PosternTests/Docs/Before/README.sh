case "$first" in
"postern init"*) mail_system ;;
"postern key issue"*) installation; juice; service ;;
esac
