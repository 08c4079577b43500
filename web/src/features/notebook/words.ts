import { defineWords } from '../../i18n/words'

export const words = defineWords({
  defaultScheduler: { zh: '默认调度器', en: 'Default scheduler' },
  t9kScheduler: { zh: 'T9k 调度器（队列 {queue}）', en: 'T9k scheduler (queue {queue})' },
  sshOff: { zh: '未启用', en: 'Off' },
  sshHelp: { zh: '先运行第一条命令，再运行第二条', en: 'Run the first command, then the second' },
  idle: { zh: '空闲', en: 'Idle' },
  inUse: { zh: '使用中', en: 'In use' },
  unknownUse: { zh: '还不知道', en: 'Not known yet' },
  lastActivity: { zh: '最近使用：{time}', en: 'Last used: {time}' },
  dataVolumes: { zh: '数据卷', en: 'Data volumes' },
  claim: { zh: '名称', en: 'Name' },
  mountPath: { zh: '绑定路径', en: 'Mount path' },
})
