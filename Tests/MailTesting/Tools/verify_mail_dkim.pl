#!/usr/bin/env perl
# Verifies every DIR/*.eml with Mail::DKIM, keys from DIR/dns.tsv; prints a line "file result result ..." for each, top to bottom.
# Versions that do not know Ed25519 (1.20230212 in Debian 12) give "unsupported" for it.
use strict;
use warnings;
no warnings 'redefine';
use Mail::DKIM::Verifier;
use Mail::DKIM::DNS;
use Net::DNS;

my $folder = shift or die "usage: $0 DIR\n";
my %records;
open my $dns, '<', "$folder/dns.tsv" or die "$folder/dns.tsv: $!\n";
while (<$dns>) {
    chomp;
    my ( $name, $text ) = split /\t/, $_, 2;
    $records{$name} = $text;
}
*Mail::DKIM::DNS::query = sub {
    my ($name) = @_;
    my $text = $records{$name} or do { $@ = 'NXDOMAIN'; return };
    $@ = 'NOERROR';
    return Net::DNS::RR->new( owner => $name, type => 'TXT', txtdata => [ unpack '(a255)*', $text ] );
};

for my $path ( sort glob "$folder/*.eml" ) {
    open my $file, '<:raw', $path or die "$path: $!\n";
    local $/;
    my $verifier = Mail::DKIM::Verifier->new;
    $verifier->PRINT(<$file>);
    $verifier->CLOSE;
    my @results;
    for my $signature ( $verifier->signatures ) {
        push @results, $signature->result_detail =~ /unsupported algorithm/ ? 'unsupported' : $signature->result;
    }
    my ($name) = $path =~ m{([^/]+)$};
    print join( ' ', $name, @results ), "\n";
}
