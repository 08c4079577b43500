import { defineWords } from '../../i18n/words'

export const words = defineWords({
  title: { zh: '总览', en: 'Overview' },
  resources: { zh: '资源', en: 'Resources' },
  events: { zh: '事件', en: 'Events' },
  quota: { zh: '配额', en: 'Quota' },
  storage: { zh: '存储', en: 'Storage' },
  build: { zh: '构建', en: 'Build' },
  auxiliary: { zh: '辅助', en: 'Auxiliary' },
  running: { zh: '{count} 个运行中', en: '{count} running' },
  waiting: { zh: '{count} 个等待中', en: '{count} waiting' },
  failed: { zh: '{count} 个失败', en: '{count} failed' },
  forbidden: { zh: '没有查看权限', en: 'You may not see these' },
  noQuota: { zh: '项目 {project} 没有设置配额，可以使用集群的全部空闲资源。', en: 'Project {project} has no quota: it may use whatever is free in the cluster.' },
  used: { zh: '{used} / {hard}', en: '{used} of {hard}' },
  nearly: { zh: '已使用 {percent}%，接近上限', en: '{percent} % used, close to the limit' },
  full: { zh: '已用完：新的工作负载会被拒绝', en: 'Used up: new work will be refused' },
  pods: { zh: 'Pod 数量', en: 'Pods' },
  mine: { zh: '本项目的用量', en: 'What this project uses' },
  sumRequests: { zh: '请求值合计', en: 'Requests together' },
})
