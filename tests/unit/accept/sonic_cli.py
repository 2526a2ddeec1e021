"""What Enterprise SONiC prints in sonic-cli, in the forms of its renderer templates and of printed sessions."""

VERSION = """\
Software Version  : 4.3.0-Enterprise_Standard
Product           : Enterprise SONiC Distribution by Dell Technologies
Distribution      : Debian 10.13
Kernel            : 5.10.0-21-amd64
"""

LLDP = """\
-----------------------------------------------------------
LLDP Neighbors
-----------------------------------------------------------
Interface:   Ethernet256,via: LLDP
  Chassis:
    ChassisID:    50:0a:00:01:00:00
    SysName:      spine-01
    SysDescr:     SONiC Software Version: SONiC-OS-4.3.0-Enterprise_Standard - HwSku: DellEMC-Z9664f-O64
    TTL:          120
    MgmtIP:       10.99.83.235
    Capability:   ROUTER, ON
  Port
    PortID:       Ethernet0
    PortDescr:    to_leaf-01
-----------------------------------------------------------
Interface:   Ethernet264,via: LLDP
  Chassis:
    ChassisID:    50:0a:00:03:00:00
    SysName:      spine-02
    TTL:          120
  Port
    PortID:       50:0a:00:03:00:01
    PortDescr:    Eth1/1
-----------------------------------------------------------
"""

NO_LLDP = "\n".join(LLDP.splitlines()[:3])

LLDP_TABLE = f"""\
{"-" * 102}
{"LocalPort":20}{"RemoteDevice":20}{"RemotePortID":20}{"Capability":20} RemotePortDescr
{"-" * 103}
{"Ethernet256":20}{"spine-01":20}{"Ethernet0":20}{"R":20}to_leaf-01
"""

STATUS = f"""\
{"-" * 120}
{"Name":20}{"Description":30}{"Oper":10}{"Reason":16}{"AutoNeg":10}{"Speed":10}{"MTU":10}Alternate Name
{"-" * 120}
{"Ethernet0":20}{"to compute-001 be0-port0":30}{"up":10}{"oper-up":16}{"off":10}{"400000":10}{"9100":10}Eth1/1/1
{"Ethernet4":20}{"-":30}{"down":10}{"phy-link-down":16}{"off":10}{"-":10}{"9100":10}Eth1/1/2
"""

OLD_STATUS = f"""\
{"-" * 90}
{"Name":20}{"Description":20}{"Admin":15}{"Oper":15}{"Speed":15}{"MTU":15}
{"-" * 90}
{"Ethernet0":20}{"-":20}{"up":15}{"down":15}{"100GB":15}{"9100":15}
"""

BGP_IPV4 = """\
BGP router identifier 172.30.12.3, local AS number 65101
Neighbor        V   AS        MsgRcvd   MsgSent   InQ     OutQ    Up/Down         State/PfxRcd
Ethernet256     4   65100     4501      4505      0       0       1d01h43m        12
Ethernet264     4   65100     2716      2723      0       0       never           ACTIVE
172.30.20.1     4   4200000001 39398    39409     0       0       00:40:10        3
"""

BGP_EVPN = """\
BGP router identifier 172.30.12.3, local AS number 65101
Neighbor        V   AS    MsgRcvd   MsgSent   InQ     OutQ    Up/Down                 State/PfxRcd
Ethernet256     4   65100 4501      4505      0       0       1d01h43m                8

Total number of neighbors 1
Total number of neighbors established 1
"""

PFC = """\
Flow Control frames received
       Port    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
-----------  ------  ------  ------  ------  ------  ------  ------  ------
        CPU       0       0       0       0       0       0       0       0
  Ethernet0       0       0       0     129       0       0       0       0

Flow Control frames transmitted
       Port    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
-----------  ------  ------  ------  ------  ------  ------  ------  ------
        CPU       0       0       0       0       0       0       0       0
  Ethernet0       0       0       0       7       0       0       0       0

Priority-based Flow Control Watchdog Port:Queue Statistics
                                Storms          Transmitted        Received          TX Last            RX Last
 Port       Queue   Status Detected Restored    OK      Drop      OK      Drop      OK      Drop       OK      Drop
----------- ----- -------- -------- -------- -------- -------- -------- -------- -------- --------- -------- ---------
 Ethernet0      1       N/A       0        0        0        0        0        0        0         0        0         0
"""

DOM = """\
-----------------------------------------------------------------------
Ethernet0
-----------------------------------------------------------------------
    None detected

-----------------------------------------------------------------------
Ethernet12
-----------------------------------------------------------------------
Identifier: QSFP28
Vendor Name: Molex
Vendor Part: 1002971051
ChannelMonitorValues:
Rx1Power: -inf dBm
Rx2Power: -2.5 dBm
Tx1Bias: 0.0000 mA
DOM Threshold is not supported

----------------------------------------------------------------------
Ethernet80
-----------------------------------------------------------------------
    Identifier: QSFP-DD
    Vendor Name: AVAGO
    ChannelMonitorValues:
        Rx1Power: -3.9794 dBm
        Rx2Power: -2.2790 dBm
        Tx1Power: 3.0425 dBm
    ChannelThresholdValues:
        RxPowerHighAlarm  : 7.5000 dBm
    ModuleMonitorValues:
        Temperature: 30.7773 C
"""
