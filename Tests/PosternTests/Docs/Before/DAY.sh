case "$first" in
"# A team"*)
    installation
    {
        echo "user,inbox,verified,team,app,sub,since,last_seen"
        for number in $(seq 2000); do
            echo "u$number,u$number@home.example,true,juice,com.example.juice,001.u$number,2024-05-01,2024-06-01"
        done
    } >people.csv
    ;;
esac
