// main.cf and master.cf of a private Postfix, before the relay's settings are applied.

import Foundation

enum PrivateConfiguration {
    /// Name, owned by postfix (otherwise root), group postdrop (otherwise root), mode; as in
    /// postfix-files(5).
    static let queueFolders: [(String, Bool, Bool, mode_t)] =
        [
            "active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming",
            "private", "saved", "trace",
        ].map {
            ($0, true, false, 0o700)
        } + [
            ("maildrop", true, true, 0o730), ("public", true, true, 0o710),
            ("pid", false, false, 0o755),
        ]

    static func main(_ options: PrivatePostfix.Options, directory: String) -> String {
        let routes = options.routes.sorted { $0.key < $1.key }.map {
            "{ \($0.key) = smtp:[127.0.0.1]:\($0.value) }"
        }
        return """
            compatibility_level = 3.6
            multi_instance_name = postfix-\((directory as NSString).lastPathComponent)
            multi_instance_enable = yes
            queue_directory = \(directory)/queue
            data_directory = \(directory)/data
            maillog_file = /dev/stdout
            myhostname = \(options.hostName)
            myorigin = \(options.hostName)
            mydestination =
            local_recipient_maps =
            alias_maps =
            alias_database =
            inet_interfaces = 127.0.0.1
            inet_protocols = ipv4
            mynetworks = \(options.trustsLoopback ? "127.0.0.0/8" : "")
            smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
            smtpd_authorized_xclient_hosts = 127.0.0.0/8
            smtpd_peername_lookup = no
            smtpd_client_event_limit_exceptions = static:all
            smtp_dns_support_level = disabled
            smtp_host_lookup = native
            transport_maps = \(routes.isEmpty ? "" : "inline:{ \(routes.joined(separator: ", ")) }")
            notify_classes =
            biff = no
            minimal_backoff_time = 5s
            maximal_backoff_time = 5s
            queue_run_delay = 5s
            in_flow_delay = 0
            # Several messages to one sink must not wait for each other's connection to be given up.
            smtp_connection_cache_on_demand = no

            """
    }

    static func master(_ options: PrivatePostfix.Options, port: UInt16, ports: [UInt16]) -> String {
        let extra = zip(options.services, ports).map {
            $0.replacingOccurrences(of: "{port}", with: String($1))
        }
        return """
            127.0.0.1:\(port) inet n - n - - smtpd
            \(extra.joined(separator: "\n"))
            pickup unix n - n 60 1 pickup
            cleanup unix n - n - 0 cleanup
            qmgr unix n - n 300 1 qmgr
            tlsmgr unix - - n 1000? 1 tlsmgr
            rewrite unix - - n - - trivial-rewrite
            bounce unix - - n - 0 bounce
            defer unix - - n - 0 bounce
            trace unix - - n - 0 bounce
            verify unix - - n - 1 verify
            flush unix n - n 1000? 0 flush
            proxymap unix - - n - - proxymap
            proxywrite unix - - n - 1 proxymap
            smtp unix - - n - - smtp
            relay unix - - n - - smtp
            lmtp unix - - n - - lmtp
            showq unix n - n - - showq
            error unix - - n - - error
            retry unix - - n - - error
            discard unix - - n - - discard
            local unix - n n - - local
            virtual unix - n n - - virtual
            anvil unix - - n - 1 anvil
            scache unix - - n - 1 scache
            postlog unix-dgram n - n - 1 postlogd

            """
    }
}
